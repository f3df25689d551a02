// The overhead per request, compared with a bare node:http server that sends the same bytes.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import type { RequestSpec } from '../load/jobs.ts'
import type { Served } from '../processes.ts'
import { compare } from '../rounds.ts'
import { getRequest, ownKey, repeatGet, requestOnce } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'

/** Node sets these itself. */
const BY_NODE = new Set(['date', 'connection', 'keep-alive'])

/** A bare server that sends the same response as Adit. */
export async function startBare(fixtures: Fixtures, ours: Served, spec: RequestSpec): Promise<Served> {
  const { status, rawHeaders, body } = await requestOnce(ours.url, spec)
  const names = rawHeaders.filter((_, index) => index % 2 === 0)
  const headers = Object.fromEntries(
    names.flatMap((name, index) =>
      BY_NODE.has(name.toLowerCase()) ? [] : [[name, rawHeaders[index * 2 + 1] as string]],
    ),
  )
  const date = names.some((name) => name.toLowerCase() === 'date')
  const keepAliveS = Number(/keep-alive,timeout=(\d+)/i.exec(rawHeaders.join(','))?.[1] ?? 5)
  const bare = await fixtures.baseline('bare', { status, headers, body, date, keepAliveS })
  const sizes = [countBytes(rawHeaders), countBytes((await requestOnce(bare.url, spec)).rawHeaders)]
  if (sizes[0] !== sizes[1])
    fixtures.progress(`the bare server's headers differ: ${sizes.join(' and ')} bytes`)
  return bare
}

const countBytes = (rawHeaders: string[]) => rawHeaders.join('  ').length

async function againstBare(fixtures: Fixtures, path: string) {
  const ours = await fixtures.adit(await fixtures.sqlite('keys-1000', keysPlan(1_000)))
  const spec = getRequest(path, ownKey(fixtures))
  const bare = await startBare(fixtures, ours, spec)
  return compare(await repeatGet(fixtures, ours, spec), await repeatGet(fixtures, bare, spec))
}

export const workspace: Figure[] = [
  {
    name: 'workspace_vs_bare',
    ours: 'GET /workspace with a key, headers and log as shipped',
    other: 'the same bytes from a bare node:http server',
    unit: 'requests/s',
    target: { atLeast: 0.92 },
    measure: (fixtures) => againstBare(fixtures, '/api/v1/workspace'),
  },
  {
    name: 'usage_vs_bare',
    ours: 'GET /usage of a year with a key, on SQLite',
    other: 'the same bytes from a bare node:http server',
    unit: 'requests/s',
    target: { atLeast: 0.8 },
    measure: (fixtures) => againstBare(fixtures, '/api/v1/usage?days=365'),
  },
]
