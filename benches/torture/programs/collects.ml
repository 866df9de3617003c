(* Threads with time slices by a timer, signals, children: OCaml. *)
let line name value = Printf.printf "%s: %s\n%!" name value
let churn seed =
  let sum = ref seed and kept = ref [] in
  for round = 0 to 3000 do
    let list = List.init 300 (fun i -> i + round) in
    kept := if round mod 50 = 0 then [] else list :: !kept;
    sum := (!sum * 31 + List.fold_left (+) 0 list) mod 1000003
  done; !sum
let () =
  let results = Array.make 4 0 in
  let threads = List.init 4 (fun i -> Thread.create (fun () -> results.(i) <- churn i) ()) in
  List.iter Thread.join threads;
  line "sums" (String.concat " " (Array.to_list (Array.map string_of_int results)));
  let caught = ref 0 in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> incr caught));
  for n = 0 to 19 do
    ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0.002 });
    while !caught = n do (try ignore (Unix.select [] [] [] 0.05) with Unix.Unix_error (Unix.EINTR, _, _) -> ()) done
  done;
  line "alarms" (string_of_int !caught);
  Sys.set_signal Sys.sigalrm Sys.Signal_default;
  let began = Unix.gettimeofday () in
  for _ = 1 to 50 do Unix.sleepf 0.002 done;
  line "slept" (string_of_bool (Unix.gettimeofday () -. began >= 0.1));
  line "selected" (string_of_int (List.length (List.filter (fun _ -> Unix.select [] [] [] 0.002 = ([], [], [])) (List.init 50 Fun.id))));
  line "children" (string_of_int (List.fold_left (+) 0 (List.init 20 (fun n -> Sys.command (Printf.sprintf "exit %d" n)))));
  let deep = ref 0 in
  (try let rec dig n = deep := n; 1 + dig (n + 1) in ignore (dig 0) with Stack_overflow -> ());
  line "exhausted" (string_of_bool (!deep > 1000))
