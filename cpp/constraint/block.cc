#include "constraint/block.h"

#include "layout/engine.h"
#include "layout/enums.h"
#include "smooth/unsupported.h"
#include "spatial/lanes.h"

namespace mujacobian {
namespace {

// mjMINVAL: below it MuJoCo holds R constant
constexpr double kMinR = 1e-15;

bool is_contact(int type) { return type >= constraint::kContactFrictionless; }

}  // namespace

Reference reference(const DataView& d, int row) {
  const double* kbip = d.efc_KBIP + 4 * row;
  Reference r{kbip[0], kbip[1], kbip[2], kbip[3], d.efc_pos[row] - d.efc_margin[row], 0};
  if (d.efc_R[row] > kMinR) r.dlogD = r.slope / (r.imp * (1 - r.imp));
  return r;
}

void take_jacobian(Block& b, int n, const int* dofs, Arena& arena) {
  b.n = n;
  b.stride = round_to_lanes(n);
  b.dofs = dofs;
  b.J = arena.zeros<double>(b.count * b.stride);
}

int merge_chains(const ModelView& m, int body0, int body1, int* dofs) {
  int i = last_dof(m, body0), j = last_dof(m, body1), n = 0;
  while (i >= 0 || j >= 0) {
    int dof = i > j ? i : j;
    if (i == dof) i = m.dof_parentid[i];
    if (j == dof) j = m.dof_parentid[j];
    dofs[n++] = dof;
  }
  for (int a = 0, b = n - 1; a < b; a++, b--) {
    int swapped = dofs[a];
    dofs[a] = dofs[b];
    dofs[b] = swapped;
  }
  return n;
}

Blocks make_blocks(const ModelView& m, const DataView& d, Arena& arena) {
  Blocks blocks{arena.take<Block>(d.nefc), 0};
  for (int row = 0; row < d.nefc;) {
    Block& b = blocks.block[blocks.count++];
    b.row = row;
    b.type = d.efc_type[row];
    b.id = d.efc_id[row];
    b.geometry = nullptr;
    if (is_contact(b.type)) {
      make_contact(m, d, b, arena);
    } else if (b.type == constraint::kEquality) {
      make_equality(m, d, b, arena);
    } else {
      make_scalar(m, d, b, arena);
    }
    row += b.edges;
  }
  return blocks;
}

void differentiate(const ModelView& m, const DataView& d, const Block& block,
                   const BlockMotion& motion, BlockChange& change, Arena& arena) {
  if (is_contact(block.type)) {
    differentiate_contact(m, d, block, motion, change, arena);
  } else if (block.type == constraint::kEquality) {
    differentiate_equality(m, d, block, motion, change, arena);
  } else {
    differentiate_scalar(m, d, block, motion, change);
  }
}

}  // namespace mujacobian
