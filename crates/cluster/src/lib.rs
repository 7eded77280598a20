//! Matrix products, k-means, nearest centroids and exact neighbours.
