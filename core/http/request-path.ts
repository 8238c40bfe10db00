/** The path of a request's URL; empty where it is no URL, since errors of such a request have to be told too. */
export function pathOf(request: Request): string {
  return URL.parse(request.url)?.pathname ?? "";
}
