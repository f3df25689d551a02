// Assertions about a project in which packages are installed.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, type Test } from '../support/cleanup.ts'
import { collectText } from '../support/network/collect.ts'
import { root } from '../support/processes/process.ts'
import { until } from '../support/until.ts'
import type { Project } from './packed.ts'

const tsc = join(root, 'node_modules/.bin/tsc')
export const typeRoots = [join(root, 'node_modules/@types')]

/** An installed `adit` serves the dashboard and the API, and its client and edge SDK can be used. */
export async function assertServes(t: Test, { folder }: Project): Promise<void> {
  const bin = join(folder, 'node_modules/.bin')
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder }
  const help = execFileSync(join(bin, 'adit'), ['--help'], { cwd: folder, env, encoding: 'utf8' })
  assert.match(help, /keys create/)
  const serving = spawn(join(bin, 'adit'), ['serve', '--json'], {
    cwd: folder,
    env: { ...env, ADIT_PORT: '0', ADIT_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(t, () => serving.kill('SIGKILL'))
  const output = collectText(serving.stdout)
  await until('it serves', () => output().includes('\n'))
  const { url, token } = JSON.parse(output())
  const page = await (await fetch(url)).text()
  const [script] = /assets\/index-[\w-]+\.js/.exec(page) ?? assert.fail('the page has no script')
  assert.equal((await fetch(`${url}/${script}`)).status, 200)
  assert.equal((await fetch(`${url}/docs`)).status, 200)

  const code = `import { createClient } from 'adit/client'
    import { createControlPlane, startVerifier } from 'adit/edge'
    const client = createClient({ baseUrl: process.argv[2] ?? '', apiKey: process.argv[3] ?? '' })
    const { slug }: { slug: string } = await client.workspace.read()
    startVerifier(createControlPlane({ url: process.argv[2] ?? '', credential: 'adit_edge_x' })).close()
    process.stdout.write(slug)`
  writeFileSync(join(folder, 'use.ts'), code)
  const used = execFileSync(join(bin, 'node'), ['use.ts', url, token], { cwd: folder, env, encoding: 'utf8' })
  assert.equal(used, 'default')
  assertCompiles(folder, { module: 'nodenext', types: ['node'], typeRoots })
}

/** With a tsconfig.json for the options, or with the one that is in the folder. */
export function assertCompiles(folder: string, options?: object): void {
  const compilerOptions = { noEmit: true, strict: true, target: 'esnext', ...options }
  if (options)
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  const { status, stdout } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], { encoding: 'utf8' })
  assert.equal(status, 0, stdout)
}
