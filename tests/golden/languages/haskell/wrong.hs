main :: IO ()
main = getContents >>= print . product . map (read :: String -> Integer) . words
