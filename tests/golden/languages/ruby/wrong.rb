puts gets.split.map(&:to_i).reduce(:-)
