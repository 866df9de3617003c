-- Threads with time slices by a timer's signal, transactions, time-outs, children: Haskell.
import Control.Concurrent
import Control.Concurrent.MVar
import Control.Exception
import Control.Monad
import qualified Data.Map.Strict as Map
import System.Exit
import System.IO
import System.Posix.Signals
import System.Process
import System.Timeout
import System.Mem

line :: Show a => String -> a -> IO ()
line name value = putStrLn (name ++ ": " ++ show value)

churn :: Int -> Int
churn seed = Map.foldl' (\s v -> (s * 31 + v) `mod` 1000003) seed (Map.fromList [((n * 7919) `mod` 100003, n) | n <- [1 .. 60000]])

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  results <- forM [0 .. 3] $ \i -> do { done <- newEmptyMVar; _ <- forkOS (evaluate (churn i) >>= putMVar done); return done }
  mapM takeMVar results >>= line "sums"
  channel <- newChan
  _ <- forkIO (forM_ [1 .. 20000 :: Int] (writeChan channel))
  fmap sum (replicateM 20000 (readChan channel)) >>= line "consumed"
  outs <- replicateM 20 (timeout 5000 (threadDelay 1000000))
  line "time-outs" (length (filter (== Nothing) outs))
  caught <- newEmptyMVar
  _ <- installHandler sigUSR1 (Catch (putMVar caught ())) Nothing
  replicateM_ 20 (raiseSignal sigUSR1 >> takeMVar caught)
  line "signals" (20 :: Int)
  killed <- newEmptyMVar
  sleeper <- forkIO (threadDelay 10000000 `catch` \e -> putMVar killed (show (e :: AsyncException)))
  threadDelay 10000 >> killThread sleeper
  takeMVar killed >>= line "killed"
  codes <- replicateM 20 (readProcess "echo" ["hello"] "")
  line "children" (length (filter (== "hello\n") codes))
  replicateM_ 10 performMajorGC
  line "collected" True
