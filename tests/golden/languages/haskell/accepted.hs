main :: IO ()
main = getContents >>= print . sum . map (read :: String -> Integer) . words
