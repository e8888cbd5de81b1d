// Products of small dense matrices, stored by rows with strides that are whole lanes.
#pragma once

namespace mujacobian {

// C (m, n) += A (k, m)^T B (k, n). The columns of B and C are padded to whole lanes. A needs no
// padding, even if m is not a multiple of four.
void add_product(double* c, int c_stride, const double* a, int a_stride, const double* b,
                 int b_stride, int m, int n, int k);

// The same for a product that is symmetric, with m = n. Its upper triangle is copied from the lower
// one.
void add_symmetric_product(double* c, int c_stride, const double* a, int a_stride, const double* b,
                           int b_stride, int n, int k);

}  // namespace mujacobian
