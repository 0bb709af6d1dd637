main :: IO ()
main = undeclared
