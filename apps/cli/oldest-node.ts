/** The oldest major version of Node that runs the command line. */
export const OLDEST_NODE = 20;
