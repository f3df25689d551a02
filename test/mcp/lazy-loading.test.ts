// The MCP SDK is large, so it is loaded on first use.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/processes/process.ts'

/** All files that a file imports statically, without types. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  loaded.add(file)
  const statements = readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )[^']*from '([^']+)'/gm)
  for (const [, target = ''] of statements) {
    const found = target.startsWith('.') ? join(dirname(file), target) : target
    if (loaded.has(found)) continue
    if (target.startsWith('.')) loadedWith(found, loaded)
    else loaded.add(found)
  }
  return loaded
}

test('neither the server nor the CLI loads the MCP SDK at start', () => {
  for (const start of ['src/main.ts', 'src/cli/server/serve.ts']) {
    const loaded = [...loadedWith(join(root, start))]
    assert.ok(loaded.length > 10)
    assert.deepEqual(
      loaded.filter((each) => /modelcontextprotocol|src\/mcp\//.test(each)),
      [],
    )
  }
  assert.ok(loadedWith(join(root, 'src/cli/mcp.ts')).has('@modelcontextprotocol/server'))
})
