/** Attachments under our own URLs: finds the source's current URL for them, and reads their thumbnails. */
export { FreshUrls, isThumbnailSize, type ThumbnailSize } from "./fresh-urls";
export { fetchThumbnail } from "./thumbnail";
