// Check that MathJax reads every equation: check_equations.mjs NODE_MODULES < EQUATIONS.
// EQUATIONS is JSON, a list of {page, tex, display}. Prints a line for each error.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(`${process.argv[2]}/`);
const MathJax = await require('mathjax').init({
  loader: { load: ['input/tex'] },
  tex: { formatError: (_, error) => { throw error; } },
});
for (const { page, tex, display } of JSON.parse(readFileSync(0, 'utf8'))) {
  try {
    MathJax.tex2mml(tex, { display });
  } catch (error) {
    console.log(`${page}: ${error.message} in ${tex}`);
  }
}
