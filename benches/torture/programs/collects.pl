% Threads, message queues, alarms, exceptions, a collector: SWI-Prolog.
:- initialization(main, main).
churn(Seed, Sum) :- numlist(1, 60000, List), foldl([V, S, T]>>(T is (S * 31 + V) mod 1000003), List, Seed, Sum).
line(Name, Value) :- format("~w: ~w~n", [Name, Value]).
main :-
    findall(Id, (between(0, 3, I), thread_create((churn(I, S), thread_exit(S)), Id)), Ids),
    findall(S, (member(Id, Ids), thread_join(Id, exited(S))), Sums), line(sums, Sums),
    thread_self(Me),
    thread_create(forall(between(1, 5000, N), thread_send_message(Me, n(N))), Producer),
    findall(N, (between(1, 5000, _), thread_get_message(n(N))), Ns), sum_list(Ns, Total), thread_join(Producer, true), line(consumed, Total),
    findall(x, (between(1, 10, _), catch(call_with_time_limit(0.02, sleep(1)), time_limit_exceeded, true)), Xs), length(Xs, Limits), line('time-outs', Limits),
    thread_create(catch(sleep(10), stop, thread_exit(stopped)), Sleeper), sleep(0.05), thread_signal(Sleeper, throw(stop)), thread_join(Sleeper, How), line(signalled, How),
    garbage_collect, garbage_collect_atoms, line(collected, true),
    findall(C, (between(1, 10, N), format(atom(Command), "exit ~w", [N]), shell(Command, C)), Cs), line(children, Cs).
