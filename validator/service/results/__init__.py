"""What runners hand in: packed, verified by digest, unpacked as untrusted input and compared anew."""
