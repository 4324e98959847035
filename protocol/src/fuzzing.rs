//! Bodies of the fuzz targets: any bytes go in, and what must hold of the answer is asserted.
