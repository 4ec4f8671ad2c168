// Counts results by kind, and names what failed: node score.mjs SCRATCH RESULTS
import fs from 'fs'
import path from 'path'

const [scratch, file] = process.argv.slice(2)
const suites = path.resolve(scratch, 'node_modules/http-cache-tests')
const { default: tests } = await import(path.join(suites, 'tests/index.mjs'))
const { default: surrogate } = await import(path.join(suites, 'tests/surrogate-control.mjs'))
const results = JSON.parse(fs.readFileSync(path.resolve(scratch, file)))
const count = {}
const failed = []
for (const test of [...tests, surrogate].flatMap(suite => suite.tests)) {
  if (test.browser_only) continue
  const kind = test.kind ?? 'required'
  const passed = results[test.id] === true
  count[kind] ??= { passed: 0, of: 0 }
  count[kind].of += 1
  count[kind].passed += passed ? 1 : 0
  if (!passed && kind !== 'check') failed.push(`  ${kind} ${test.id}: ${JSON.stringify(results[test.id])}`)
}
for (const [kind, { passed, of }] of Object.entries(count)) console.log(`${kind}: ${passed} of ${of}`)
console.log(failed.join('\n'))
