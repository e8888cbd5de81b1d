// Products of small dense matrices, stored by rows with strides that are whole lanes.
#pragma once

namespace mujacobian {

// C (m, n) += A (k, m)^T B (k, n). Columns of B and C are padded to whole lanes; so, when
// m is not a multiple of four, nothing is needed of A.
void add_product(double* c, int c_stride, const double* a, int a_stride, const double* b,
                 int b_stride, int m, int n, int k);

// The same of a product that is symmetric, m = n: its upper triangle is copied from the lower one.
void add_symmetric_product(double* c, int c_stride, const double* a, int a_stride, const double* b,
                           int b_stride, int n, int k);

}  // namespace mujacobian
