#!/bin/sh
# make_venv.sh PYTHON FOLDER: a virtual environment with pip, also where Debian left ensurepip out
set -e
python=$1
folder=$2
rm -rf "$folder"
if "$python" -c 'import ensurepip' 2>/dev/null; then
  "$python" -m venv "$folder"
else
  "$python" -m venv --without-pip "$folder"
  if ! "$python" -m pip -qq --python "$folder/bin/python" install pip; then
    echo "no pip in $folder: install ensurepip (Debian: apt install python3-venv) or pip >= 22.3" >&2
    rm -rf "$folder"
    exit 1
  fi
fi
