/** What the bill of materials says is in the image. */
import { sbomOfProject } from "./sbom";

interface Component {
  name: string;
  group?: string;
  version: string;
  purl: string;
  properties?: { name: string; value: string }[];
}

export function componentsOfImage(): Component[] {
  const { components } = JSON.parse(sbomOfProject()) as { components: Component[] };
  return components.filter(({ properties = [] }) => properties.some(({ name }) => name === "basetide:image"));
}
