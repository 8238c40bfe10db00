/** Attachments by URLs of ours: how those are signed, and where the source has what they stand for. */
export { FreshUrls } from "./fresh-urls";
