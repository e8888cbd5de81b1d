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

// The same as add_product if most of A is zero. The columns of A and the rows of C are padded to
// groups of four, and `rows` has room for k numbers.
void add_sparse_product(double* c, int c_stride, const double* a, int a_stride, const double* b,
                        int b_stride, int m, int n, int k, int* rows);

// A (n, n) += A^T. The rows and columns of A are padded to groups of four.
void add_transpose(double* a, int stride, int n);

}  // namespace mujacobian
