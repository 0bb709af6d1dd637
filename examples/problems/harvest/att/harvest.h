// What you write: the largest sum of one or more neighbouring fields.
long long best_harvest(int n, const int* yields);
