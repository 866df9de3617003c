# A collector, sleeps, interrupts, children in parallel: R.
line <- function(name, value) cat(name, ": ", paste(value, collapse = " "), "\n", sep = "")
churn <- function(seed) { sum <- seed; for (round in 1:300) { list <- lapply(1:500, function(i) i + round); sum <- (sum * 31 + sum(unlist(list))) %% 1000003 }; sum }
line("sums", sapply(0:3, churn))
line("parallel", unlist(parallel::mclapply(0:7, churn, mc.cores = 4)))
line("slept", system.time(for (n in 1:50) Sys.sleep(0.002))["elapsed"] >= 0.1)
line("children", sapply(1:20, function(n) system("echo hello", intern = TRUE)))
line("matrix", round(sum(solve(matrix((1:250000 * 7919) %% 1009, 500) + diag(500) * 1e5)), 6))
line("limit", tryCatch({ setTimeLimit(elapsed = 0.2, transient = TRUE); repeat {} }, error = function(e) "reached"))
