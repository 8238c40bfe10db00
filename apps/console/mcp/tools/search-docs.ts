/** Searches Basetide's own documentation. */
import { z } from "zod";
import { cutText } from "../../../../core/cut-text";
import { allSections, searchDocs } from "../../docs/search";
import { tool } from "../tool";

const MOST_TEXT = 1500;
const MOST_MATCHES = 5;

export const searchDocsTool = tool({
  name: "search_docs",
  title: "Search the documentation",
  description:
    "Sections of Basetide's documentation that match words: SQL, freshness, types, change sets, errors.",
  input: z.object({ text: z.string().min(1).max(200) }),
  output: z.object({ sections: z.array(z.object({ title: z.string(), url: z.string() })) }),
  isReadOnly: true,
  scope: "agent:read",
  async run({ ctx }, { text }) {
    const sections = allSections();
    const matches = searchDocs(sections, text).slice(0, MOST_MATCHES);
    const origin = new URL(ctx.config.consoleUrl).origin;
    const found = matches.map(({ href, title, section }) => {
      const body = cutText(sections.find((one) => one.href === href)?.text ?? "", MOST_TEXT);
      return { title: section ? `${title} / ${section}` : title, url: `${origin}${href}`, body: body.trim() };
    });
    const parts = found.map(({ title, url, body }) => `# ${title}\n${url}\n${body}`);
    return {
      data: { sections: found.map(({ title, url }) => ({ title, url })) },
      text: parts.length === 0 ? "No section has these words. Try fewer." : parts.join("\n\n"),
      isOurs: true,
    };
  },
});
