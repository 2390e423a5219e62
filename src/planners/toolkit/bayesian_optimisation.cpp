#include "planners/toolkit/bayesian_optimisation.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/invariant.h"
#include "base/random.h"

namespace tidepool {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Matern 5/2 of a matrix of squared distances.
MatrixXd kernel(const MatrixXd& squared, double length) {
  const Eigen::ArrayXXd r = (5.0 * squared.array()).sqrt() / length;  // once, not at each use
  return ((1.0 + r + r.square() / 3.0) * (-r).exp()).matrix();
}

/// Points are columns.
MatrixXd squared_distances(const MatrixXd& a, const MatrixXd& b) {
  MatrixXd d = -2.0 * a.transpose() * b;
  d.colwise() += a.colwise().squaredNorm().transpose();
  d.rowwise() += b.colwise().squaredNorm();
  return d.cwiseMax(0.0);
}

/// The process given values `y` (mean 0, deviation 1) at the columns of `x`.
class GaussianProcess {
 public:
  GaussianProcess(const MatrixXd& x, const VectorXd& y) : x_(x) {
    constexpr std::array kLengths{0.15, 0.4, 1.0};
    constexpr std::array kNoises{1e-6, 1e-2};
    const MatrixXd squared = squared_distances(x, x);
    const auto n = static_cast<double>(y.size());
    double best = -std::numeric_limits<double>::infinity();
    for (const double length : kLengths) {
      const MatrixXd noiseless = kernel(squared, length);
      for (const double noise : kNoises) {
        MatrixXd k = noiseless;
        k.diagonal().array() += noise;
        const Eigen::LLT<MatrixXd> factor(k);
        if (factor.info() != Eigen::Success) continue;
        const VectorXd weights = factor.solve(y);
        // The most likely variance follows from the other two.
        const double variance = std::max(y.dot(weights) / n, 1e-12);
        const double log_determinant = 2.0 * factor.matrixLLT().diagonal().array().log().sum();
        const double likelihood = -0.5 * (n * std::log(variance) + log_determinant);
        if (likelihood <= best) continue;
        best = likelihood;
        factor_ = factor;
        weights_ = weights;
        variance_ = variance;
        length_ = length;
      }
    }
  }

  /// E[max(0, best - value)] at each column of `points`.
  [[nodiscard]] ArrayXd expected_improvement(const MatrixXd& points, double best) const {
    const MatrixXd k = kernel(squared_distances(x_, points), length_);
    const ArrayXd mean = (k.transpose() * weights_).array();
    const MatrixXd solved = factor_.matrixL().solve(k);
    const ArrayXd explained = solved.colwise().squaredNorm().transpose().array();
    const ArrayXd deviation = (variance_ * (1.0 - explained).max(1e-12)).sqrt();
    const ArrayXd z = (best - mean) / deviation;
    const ArrayXd density = (-0.5 * z.square()).exp() / std::sqrt(2.0 * std::numbers::pi);
    const ArrayXd below =
        z.unaryExpr([](double v) { return 0.5 * std::erfc(-v / std::numbers::sqrt2); });
    return deviation * (z * below + density);
  }

 private:
  const MatrixXd& x_;
  Eigen::LLT<MatrixXd> factor_;
  VectorXd weights_;
  double variance_ = 1;
  double length_ = 1;
};

/// Mean 0 and deviation 1. An infinite value counts as one that is as far above the largest as that
/// is above the smallest.
VectorXd standardised(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const double none = low <= high ? high + (high - low) : 0;
  VectorXd y(static_cast<Index>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    y[static_cast<Index>(i)] = std::isfinite(values[i]) ? values[i] : none;
  }
  y.array() -= y.mean();
  const double deviation = std::sqrt(y.squaredNorm() / static_cast<double>(y.size()));
  if (deviation > 0) y /= deviation;
  return y;
}

/// Chooses points of the unit cube.
class Proposer {
 public:
  Proposer(Index dimensions, std::uint64_t seed) : dimensions_(dimensions), random_(seed) {}

  VectorXd next(const MatrixXd& x, const VectorXd& y) {
    constexpr Index kAnywhere = 128;
    constexpr Index kNear = 32;
    constexpr std::array kSteps{0.2, 0.05, 0.01};
    const GaussianProcess process(x, y);
    Index incumbent = 0;
    const double best = y.minCoeff(&incumbent);
    MatrixXd points(dimensions_, kAnywhere + kNear);
    for (Index i = 0; i < kAnywhere; ++i) points.col(i) = anywhere();
    for (Index i = 0; i < kNear; ++i) points.col(kAnywhere + i) = near(x.col(incumbent), kSteps[0]);
    VectorXd chosen;
    double most = -1;
    for (const double step : kSteps) {
      Index index = 0;
      const double improvement = process.expected_improvement(points, best).maxCoeff(&index);
      if (improvement > most) {
        most = improvement;
        chosen = points.col(index);
      }
      points.resize(dimensions_, kNear);
      for (Index i = 0; i < kNear; ++i) points.col(i) = near(chosen, step);
    }
    return chosen;
  }

 private:
  VectorXd anywhere() {
    VectorXd p(dimensions_);
    for (double& v : p) v = random_.uniform();
    return p;
  }

  VectorXd near(const VectorXd& centre, double step) {
    VectorXd p = centre;
    for (double& v : p) {
      // The sum of three is near enough to a normal distribution.
      const double sum = random_.uniform() + random_.uniform() + random_.uniform() - 1.5;
      v = std::clamp(v + 2 * step * sum, 0.0, 1.0);
    }
    return p;
  }

  Index dimensions_;
  Random random_;
};

}  // namespace

BayesianMinimum bayesian_minimise(const std::function<double(const Point&)>& f, const Box& box,
                                  std::span<const Point> start, const BayesianOptions& options) {
  invariant(!start.empty() && box.low.size() == box.high.size(),
            "the search has a start and a box");
  const auto dimensions = static_cast<Index>(box.low.size());
  const int most = static_cast<int>(start.size()) + options.evaluations;
  BayesianMinimum result;
  MatrixXd x(dimensions, most);  // scaled to the unit cube
  std::vector<double> values;
  const auto done = [&] { return result.value <= options.enough || options.stop.requested(); };
  const auto evaluate = [&](const Point& p) {
    for (Index d = 0; d < dimensions; ++d) {
      const auto i = static_cast<std::size_t>(d);
      x(d, result.evaluations) = (p[i] - box.low[i]) / (box.high[i] - box.low[i]);
    }
    values.push_back(f(p));
    ++result.evaluations;
    if (result.x.empty() || values.back() < result.value) {
      result.value = values.back();
      result.x = p;
    }
  };
  for (const Point& p : start) {
    if (done()) return result;
    evaluate(p);
  }
  Proposer proposer(dimensions, options.seed);
  while (result.evaluations < most && !done()) {
    const VectorXd next = proposer.next(x.leftCols(result.evaluations), standardised(values));
    Point p(box.low.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] = box.low[i] + next[static_cast<Index>(i)] * (box.high[i] - box.low[i]);
    }
    evaluate(p);
  }
  return result;
}

}  // namespace tidepool
