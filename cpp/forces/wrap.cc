#include "forces/wrap.h"

#include <numbers>

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "spatial/dual.h"
#include "spatial/jet.h"

namespace mujacobian {
namespace {

// Points and directions in the frame of the geom, and in the plane of the wrap.
template <class T>
struct Triple {
  T x, y, z;
};
template <class T>
struct Planar {
  T x, y;
};

template <class T>
T dot(const Triple<T>& a, const Triple<T>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class T>
Triple<T> cross(const Triple<T>& a, const Triple<T>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class T>
Triple<T> scaled(const T& s, const Triple<T>& a) {
  return {s * a.x, s * a.y, s * a.z};
}
template <class T>
Triple<T> normalized(const Triple<T>& a) {
  using std::sqrt;
  return scaled(1.0 / sqrt(dot(a, a)), a);
}

template <class T>
T dot(const Planar<T>& a, const Planar<T>& b) {
  return a.x * b.x + a.y * b.y;
}
template <class T>
T area(const Planar<T>& a, const Planar<T>& b) {
  return a.x * b.y - a.y * b.x;
}
template <class T>
T length(const Planar<T>& a) {
  using std::sqrt;
  return sqrt(dot(a, a));
}
template <class T>
T distance(const Planar<T>& a, const Planar<T>& b) {
  return length(Planar<T>{a.x - b.x, a.y - b.y});
}

struct Geom {
  bool cylinder;
  double radius;
};

// The branch of MuJoCo's code that computes the points. The Newton iteration for inside wraps stops
// at a tolerance, so its result depends on the variable that it iterates on.
enum class Branch { kOutsideLeft, kOutsideRight, kInsideBySine, kInsideByAngle, kInsideAverage };
constexpr double kTolerance = 1e-6;  // of the Newton iterations
constexpr double kFirstSine = 1 - 1e-7;
constexpr int kMaxIterations = 20;

bool is_inside(Branch b) { return b != Branch::kOutsideLeft && b != Branch::kOutsideRight; }

// Returns the tangent point of the line from `end` to the circle. `turn` is +1 or -1 and selects
// the side.                                                                                (WRAP-2)
template <class T>
Planar<T> tangent_point(const Planar<T>& end, double radius, double turn) {
  using std::sqrt;
  T square = dot(end, end);
  T along = radius * radius / square;
  T across = turn * radius * sqrt(square - radius * radius) / square;
  return {along * end.x - across * end.y, along * end.y + across * end.x};
}

// Returns the angle phi between the tendon and the normal at the touching point, the root of
//   asin(a sin phi) + asin(b sin phi) - 2 phi + gamma.                                  (WRAP-4)
// This version iterates on sin phi.
template <class T>
T touching_angle_by_sine(const T& a, const T& b, const T& gamma) {
  using std::asin, std::sqrt;
  T z = kFirstSine;
  for (int i = 0; i < kMaxIterations; i++) {
    T f = asin(a * z) + asin(b * z) - 2.0 * asin(z) + gamma;
    if (std::abs(value(f)) <= kTolerance) break;
    T slope =
        a / sqrt(1.0 - z * z * a * a) + b / sqrt(1.0 - z * z * b * b) - 2.0 / sqrt(1.0 - z * z);
    z = z - f / slope;
  }
  return asin(z);
}

// The same, iterating on phi.
template <class T>
T touching_angle(const T& a, const T& b, const T& gamma) {
  using std::asin, std::cos, std::sin, std::sqrt;
  T phi = std::numbers::pi / 2;
  for (int i = 0; i < kMaxIterations; i++) {
    T s = sin(phi), c = cos(phi);
    T f = asin(a * s) + asin(b * s) - 2.0 * phi + gamma;
    if (std::abs(value(f)) <= kTolerance) break;
    T slope = a * c / sqrt(1.0 - s * s * a * a) + b * c / sqrt(1.0 - s * s * b * b) - 2.0;
    phi = phi - f / slope;
  }
  return phi;
}

// Returns the point where a tendon touches the circle from inside.                      (WRAP-5)
template <class T>
Planar<T> inside_point(Branch branch, const Planar<T>& p, const Planar<T>& q, double radius) {
  using std::asin, std::atan2, std::cos, std::sin;
  if (branch == Branch::kInsideAverage) {
    Planar<T> sum = {p.x + q.x, p.y + q.y};
    T scale = radius / length(sum);
    return {scale * sum.x, scale * sum.y};
  }
  // order the ends counterclockwise
  // tie: inside wrap of opposite sites
  bool ordered = value(area(p, q)) > 0;
  const Planar<T>&first = ordered ? p : q, &second = ordered ? q : p;
  T a = radius / length(first), b = radius / length(second);
  T gamma = atan2(area(first, second), dot(first, second));
  T phi = branch == Branch::kInsideBySine ? touching_angle_by_sine(a, b, gamma)
                                          : touching_angle(a, b, gamma);
  T turn = phi - asin(a * sin(phi)), s = sin(turn), c = cos(turn);
  return {a * (c * first.x - s * first.y), a * (s * first.x + c * first.y)};
}

// Returns the length of the arc between two points of the circle, in the direction of the branch.
// (WRAP-3)
template <class T>
T arc(Branch branch, const Planar<T>& p, const Planar<T>& q, double radius) {
  using std::atan2;
  if (is_inside(branch)) return T(0.0);
  T angle = atan2(area(p, q), dot(p, q));
  if (branch == Branch::kOutsideRight) angle = -angle;
  // tie: wrap of opposite sites
  return radius * (value(angle) < 0 ? angle + 2 * std::numbers::pi : angle);
}

// Computes the two touching points for ends p and q, all in the frame of the geom.
template <class T>
void touch(Branch branch, const Geom& geom, const Triple<T>& p, const Triple<T>& q,
           Triple<T> out[2]) {
  // axes of the plane through the center and both ends, or perpendicular to the cylinder (WRAP-1)
  Triple<T> x = {1.0, 0.0, 0.0}, y = {0.0, 1.0, 0.0};
  if (!geom.cylinder) {
    x = normalized(p);
    y = normalized(cross(cross(p, q), x));
  }

  // touching points in the plane, then in space
  Planar<T> a = {dot(p, x), dot(p, y)}, b = {dot(q, x), dot(q, y)}, at[2];
  if (is_inside(branch)) {
    at[0] = at[1] = inside_point(branch, a, b, geom.radius);
  } else {
    double turn = branch == Branch::kOutsideLeft ? 1 : -1;
    at[0] = tangent_point(a, geom.radius, turn);
    at[1] = tangent_point(b, geom.radius, -turn);
  }
  for (int w = 0; w < 2; w++) {
    out[w] = {at[w].x * x.x + at[w].y * y.x, at[w].x * x.y + at[w].y * y.y,
              at[w].x * x.z + at[w].y * y.z};
  }
  if (!geom.cylinder) return;

  // unrolled, the tendon climbs the cylinder along a straight line                      (WRAP-6)
  T before = distance(a, at[0]), on = arc(branch, at[0], at[1], geom.radius);
  T climb = (q.z - p.z) / (before + on + distance(b, at[1]));
  out[0].z = p.z + climb * before;
  out[1].z = p.z + climb * (before + on);
}

Triple<double> in_frame(const Mat3& frame, Vec3 center, Vec3 point) {
  Vec3 local = transpose_mul(frame, point - center);
  return {local.x, local.y, local.z};
}

[[noreturn]] void refuse(const ModelView& m, int tendon, const char* reason) {
  throw Unsupported(element_name(m, object::kTendon, tendon), reason);
}

// A wrap in the frame of its geom.
struct LocalWrap {
  Geom geom;
  Branch branch;
  Mat3 frame;
  Triple<double> end[2];
};

// How well a branch must reproduce MuJoCo's points, relative to the size of the wrap.
constexpr double kAgreement = 1e-10;

// Returns the wrap with the branch that MuJoCo has chosen.
LocalWrap find_branch(const ModelView& m, const DataView& d, int tendon, int index,
                      const Vec3 ends[2], const double* points) {
  // ends and touching points in the frame of the geom
  const int id = m.wrap_objid[index];
  const Geom geom = {m.wrap_type[index] == wrap::kCylinder, m.geom_size[3 * id]};
  const Vec3 center = load3(d.geom_xpos + 3 * id);
  const Mat3 frame = load9(d.geom_xmat + 9 * id);
  const Triple<double> p = in_frame(frame, center, ends[0]), q = in_frame(frame, center, ends[1]);
  const Triple<double> given[2] = {in_frame(frame, center, load3(points)),
                                   in_frame(frame, center, load3(points + 3))};

  // distance of MuJoCo's points from those of a branch
  auto mismatch = [&](Branch branch) {
    Triple<double> found[2];
    touch(branch, geom, p, q, found);
    double worst = 0;
    for (int w = 0; w < 2; w++) {
      double e[3] = {found[w].x - given[w].x, found[w].y - given[w].y, found[w].z - given[w].z};
      for (double x : e) worst = std::isfinite(x) ? std::fmax(worst, std::abs(x)) : INFINITY;
    }
    return worst;
  };

  // the branch with the smallest distance, which must be rounding; MuJoCo iterates on the angle
  // since 3.16
  const bool by_angle = engine().version >= kMuJoCo316;
  const Branch newton = by_angle ? Branch::kInsideByAngle : Branch::kInsideBySine;
  Branch branch = Branch::kOutsideLeft;
  double error = mismatch(branch);
  for (Branch other : {Branch::kOutsideRight, newton, Branch::kInsideAverage}) {
    double e = mismatch(other);
    if (e < error) error = e, branch = other;
  }
  double scale = std::fmax(geom.radius, std::fmax(norm(ends[0] - center), norm(ends[1] - center)));
  // tie: plane of a wrap
  if (!(error <= kAgreement * scale)) {
    const Triple<double> across = cross(p, q);
    const bool aligned =
        !geom.cylinder && dot(across, across) <= kAgreement * dot(p, p) * dot(q, q);
    refuse(m, tendon,
           aligned ? "two of its sites and the center of a sphere are on one line, so that the "
                     "plane of its wrap is not unique"
                   : "the points where it touches a geom are not the expected ones");
  }
  return {geom, branch, frame, {p, q}};
}

// Computes the two touching points with derivatives with respect to the six coordinates of the
// ends, which are written to `ends`.
template <class T>
void touch_from(const LocalWrap& at, Triple<T> ends[2], Triple<T> found[2]) {
  for (int e = 0; e < 2; e++) {
    ends[e] = {T(at.end[e].x), T(at.end[e].y), T(at.end[e].z)};
    ends[e].x.d[3 * e] = ends[e].y.d[3 * e + 1] = ends[e].z.d[3 * e + 2] = 1;
  }
  touch(at.branch, at.geom, ends[0], ends[1], found);
}

using Curved = Jet<6>;

// Returns the block of the second derivatives with respect to ends i and j, in world axes.
Mat3 second_block(const Curved& x, int i, int j, const Mat3& frame) {
  Mat3 local;
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++) local(r, c) = x.second(3 * i + r, 3 * j + c);
  return frame * local * transposed(frame);
}

// Adds the derivatives of a function of the ends.
void add_function(const Curved& x, const Mat3& frame, RelativeFunction& f) {
  for (int i = 0; i < 2; i++) {
    f.by_position[i] += frame * load3(x.d + 3 * i);
    for (int j = 0; j < 2; j++) {
      f.positions[i][j] = f.positions[i][j] + second_block(x, i, j, frame);
    }
  }
}

bool is_finite(const Curved& x) {
  for (double h : x.h) {
    if (!std::isfinite(h)) return false;
  }
  return true;
}

}  // namespace

Wrap find_wrap(const ModelView& m, const DataView& d, int tendon, int index, const Vec3 ends[2],
               const double* points) {
  const LocalWrap at = find_branch(m, d, tendon, index, ends, points);
  const Mat3& frame = at.frame;
  using Number = Dual<6>;
  Triple<Number> variables[2], found[2];
  touch_from(at, variables, found);

  // rotate the derivatives into world axes
  Wrap wrap;
  wrap.inside = is_inside(at.branch);
  const Mat3 back = transposed(frame);
  for (int w = 0; w < 2; w++) {
    wrap.point[w] = load3(points + 3 * w);
    const Number* row[3] = {&found[w].x, &found[w].y, &found[w].z};
    for (int e = 0; e < 2; e++) {
      Mat3 local;
      for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
          local(r, c) = row[r]->d[3 * e + c];
          if (!std::isfinite(local(r, c))) {
            refuse(m, tendon, "it touches a geom where the touching point has no derivative");
          }
        }
      wrap.slip[w][e] = frame * local * back;
    }
  }
  return wrap;
}

WrapCurvature curve_wrap(const ModelView& m, const DataView& d, int tendon, int index,
                         const Vec3 ends[2], const double* points, const Vec3 velocity[2]) {
  const LocalWrap at = find_branch(m, d, tendon, index, ends, points);
  Triple<Curved> end[2], found[2];
  touch_from(at, end, found);
  WrapCurvature curved{};
  for (int e = 0; e < 2; e++) {
    // the direction from the touching point to the end, which pulls the tendon
    const Triple<Curved> span = {end[e].x - found[e].x, end[e].y - found[e].y,
                                 end[e].z - found[e].z};
    const Triple<Curved> pull = normalized(span);
    const Vec3 u = transpose_mul(at.frame, velocity[e]);
    const Curved rate = u.x * pull.x + u.y * pull.y + u.z * pull.z;
    if (!is_finite(rate)) {
      refuse(m, tendon, "it touches a geom where the touching point has no second derivative");
    }
    add_function(rate, at.frame, curved.rate);
    curved.rate.by_velocity[e] = at.frame * Vec3{pull.x.v, pull.y.v, pull.z.v};

    // the change of the direction
    for (int i = 0; i < 2; i++) {
      Mat3 local;
      for (int k = 0; k < 3; k++) {
        local(k, 0) = pull.x.d[3 * i + k];
        local(k, 1) = pull.y.d[3 * i + k];
        local(k, 2) = pull.z.d[3 * i + k];
      }
      curved.rate.mixed[i][e] = at.frame * local * transposed(at.frame);
      if (!is_inside(at.branch)) curved.length.positions[i][e] = curved.rate.mixed[i][e];
    }
    // inside a geom the touching point is not exactly where the length is stationary    (WRAP-9)
    if (is_inside(at.branch)) {
      add_function(sqrt(dot(span, span)), at.frame, curved.length);
    } else {
      curved.length.by_position[e] = curved.rate.by_velocity[e];
    }
  }
  return curved;
}

}  // namespace mujacobian
