/** The long form of the tests of images, upgrades and alerts: `bun run delivery`. Other runs have a short one. */
export const isWholeDelivery = process.env.DELIVERY === "all";
