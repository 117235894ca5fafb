// Makes a bill of materials from `npm sbom` on standard input the same for the same packages: no
// random number, the time of SOURCE_DATE_EPOCH, components in order, and no address of the registry
// they happened to come from. Called by the Dockerfile.
import { readFileSync } from "node:fs";

const bill = JSON.parse(readFileSync(0, "utf8"));
delete bill.serialNumber;
bill.metadata.component.name = "syncline";
bill.metadata.timestamp = new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1000).toISOString();
bill.components.sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1));
bill.dependencies?.sort((a, b) => (a.ref < b.ref ? -1 : 1));
for (const component of bill.components) {
  const others = component.externalReferences?.filter(({ type }) => type !== "distribution");
  if (others === undefined || others.length === 0) delete component.externalReferences;
  else component.externalReferences = others;
}
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`);
