/** How the attachments of a base are reached, as its settings say. */

import type { Config } from "../../config";
import type { Base } from "../../control/bases";
import type { AttachmentUrls } from "../../replica";
import { attachmentPrefix } from "../../replica";

/** Undefined: by the source's URLs. */
export function attachmentUrlsOf(
  { consoleUrl }: Pick<Config, "consoleUrl">,
  { id, settings, attachmentKeyVersion }: Base,
): AttachmentUrls | undefined {
  if (!settings.ownAttachmentUrls) return undefined;
  return { prefix: attachmentPrefix(consoleUrl, id), keyVersion: attachmentKeyVersion };
}
