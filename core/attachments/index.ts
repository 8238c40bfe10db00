/** Attachments under our own URLs: signs them, and finds the source's current URL for them. */
export { FreshUrls } from "./fresh-urls";
