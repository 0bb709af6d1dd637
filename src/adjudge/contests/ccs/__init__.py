"""The objects of the ICPC Contest API (CCS), made from the data of a contest. Pure: no database, no HTTP."""
