/** Write coalescing: sends writes of single records to the source in requests of up to ten. */
export { WriteCoalescer } from "./coalescer";
