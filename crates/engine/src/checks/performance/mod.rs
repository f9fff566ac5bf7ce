//! What costs time: Lighthouse's insights and diagnostics. All weigh nothing; the score of the category is
//! that of the metrics.
