/** Units of size. */
export const MB = 1024 * 1024;
