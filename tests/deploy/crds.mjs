// Checks custom resources strictly: by the types that were made from their Go sources (no unknown key, no wrong type),
// and by the validators (patterns, lengths, required keys). Reads a JSON list on standard input, prints one of faults.
//
//   node crds.mjs MODULES     MODULES: the folder in which `npm ci` was run
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const PACKAGES = {
  "cert-manager.io": "@kubernetes-models/cert-manager",
  "gateway.networking.k8s.io": "@kubernetes-models/gateway-api",
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
};
const modules = process.argv[2];
const require = createRequire(join(modules, "package.json"));
const ts = require("typescript");

const objects = JSON.parse(readFileSync(0, "utf8"));
const folder = mkdtempSync(join(modules, "objects-"));
const faults = [];
const sources = new Map();
for (const [index, object] of objects.entries()) {
  const of = `${object.kind}/${object.metadata?.name}`;
  const [group, version] = object.apiVersion.split("/");
  const model = PACKAGES[group] && `${PACKAGES[group]}/${group}/${version}/${object.kind}`;
  if (!model) {
    faults.push(`${of}: no schema of ${object.apiVersion}`);
    continue;
  }
  const { [object.kind]: Model } = await import(pathToFileURL(join(modules, "node_modules", `${model}.js`)));
  try {
    new Model(object).validate();
  } catch (error) {
    faults.push(`${of}: ${error.message}`);
  }
  const type = `I${object.kind}`;
  const literal = JSON.stringify(object, null, 1);
  const source = join(folder, `${index}.ts`);
  writeFileSync(source, `import type { ${type} } from "${model}";\nexport const object: ${type} = ${literal};\n`);
  sources.set(source, of);
}
faults.push(...typed([...sources.keys()]));
rmSync(folder, { recursive: true });
console.log(JSON.stringify(faults));

function typed(files) {
  const program = ts.createProgram(files, {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  });
  return ts.getPreEmitDiagnostics(program).map((fault) => {
    const text = ts.flattenDiagnosticMessageText(fault.messageText, " ");
    if (!fault.file) return text;
    const { line } = fault.file.getLineAndCharacterOfPosition(fault.start);
    return `${sources.get(fault.file.fileName)}: ${text} at ${fault.file.text.split("\n")[line].trim()}`;
  });
}
