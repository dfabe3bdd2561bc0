module ways

go 1.26
