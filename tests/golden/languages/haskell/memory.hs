main :: IO ()
main = do
  let numbers = [1 :: Integer ..]
  print (sum (takeWhile (> 0) numbers) + last numbers)
