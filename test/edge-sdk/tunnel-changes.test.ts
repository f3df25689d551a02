// The list of open tunnels that an edge reports, against a control plane that loses, repeats and reorders
// syncs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ClaimedTunnel, TunnelSync } from '../../src/edge-sdk/api.ts'
import { type NextSync, SYNC_ITEMS_MAX, TunnelChanges } from '../../src/edge-sdk/tunnels/changes.ts'

type Changes = NextSync['changes']

const tunnel = (id: string): ClaimedTunnel => ({
  id,
  workspace: 'acme',
  name: id,
  type: 'http',
  pool: false,
  url: `https://${id}.acme.tunnels.test`,
  keyId: 'tok_1',
  clientAddress: '192.0.2.7',
  openedAt: '2026-11-15T10:02:11.000Z',
})
const usage = (requests: number) => () => ({ requests, bytesIn: 0, bytesOut: 0, streams: 0 })

/** A control plane that applies the syncs of one session as the contract says. */
class Server {
  rows = new Map<string, number>()
  readonly #reportedBy = new Map<string, number>()
  #sequence = 0

  /** Whether the edge has to send a snapshot. */
  apply({ sequence, previous, changed, closed, snapshot }: Changes): boolean {
    if (sequence <= this.#sequence) return false
    if (previous > this.#sequence) return true
    if (previous === 0 && !snapshot) this.rows.clear()
    for (const { id, requests, isClaiming } of changed) {
      if (!isClaiming || this.rows.has(id)) this.rows.set(id, requests)
      this.#reportedBy.set(id, sequence)
    }
    for (const id of closed) this.rows.delete(id)
    if (snapshot?.isLast)
      for (const id of this.rows.keys())
        if ((this.#reportedBy.get(id) ?? 0) < snapshot.first) this.rows.delete(id)
    this.#sequence = sequence
    return false
  }

  loseEverything(): void {
    this.rows.clear()
    this.#sequence = 0
  }
}

/** Sends syncs, all of which arrive, until nothing is left to send. */
function syncAll(changes: TunnelChanges, server: Server): Changes[] {
  const sent: Changes[] = []
  for (let hasMore = true; hasMore; ) {
    const next = changes.next()
    sent.push(next.changes)
    const resync = server.apply(next.changes)
    if (resync) changes.resync()
    else next.acknowledge([])
    hasMore = resync || next.hasMore
  }
  return sent
}

const ids = fc.integer({ min: 0, max: 9 }).map((number) => `tun_${number}`)
const step = fc.oneof(
  fc.record({ do: fc.constant('open'), id: ids }),
  fc.record({ do: fc.constant('close'), id: ids }),
  fc.record({ do: fc.constant('use'), id: ids }),
  ...['arrives', 'is lost', 'arrives without a response', 'is late', 'late arrives', 'data loss'].map(
    (event) => fc.record({ do: fc.constant(event), id: ids }),
  ),
)

test('whatever happens to syncs, one that arrives makes the list exact', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const changes = new TunnelChanges()
      const server = new Server()
      const open = new Map<string, number>()
      const late: Changes[] = []
      const doStep: Record<string, (id: string) => void> = {
        open(id) {
          if (open.has(id)) return
          open.set(id, 0)
          changes.opened(tunnel(id), 'key', () => usage(open.get(id) ?? 0)())
        },
        close(id) {
          if (open.delete(id)) changes.closed(id)
        },
        use(id) {
          const requests = open.get(id)
          if (requests !== undefined) open.set(id, requests + 1)
        },
        arrives() {
          const { changes: sync, acknowledge } = changes.next()
          if (server.apply(sync)) changes.resync()
          else acknowledge([])
        },
        'is lost': () => void changes.next(),
        'arrives without a response': () => void server.apply(changes.next().changes),
        'is late': () => void late.push(changes.next().changes),
        'late arrives': () => {
          const sync = late.pop()
          if (sync) server.apply(sync)
        },
        'data loss': () => server.loseEverything(),
      }
      for (const { do: kind, id } of steps) doStep[kind]?.(id)
      syncAll(changes, server)
      assert.deepEqual([...server.rows].sort(), [...open].sort())
      // Syncs that arrive even later change nothing.
      for (const sync of late) server.apply(sync)
      assert.deepEqual([...server.rows].sort(), [...open].sort())
    }),
    { numRuns: 2_000 },
  )
})

test('without a change, a sync is empty', () => {
  const changes = new TunnelChanges()
  const server = new Server()
  for (let count = 0; count < 100; count++) changes.opened(tunnel(`tun_${count}`), 'key', usage(1))
  changes.closed('tun_0')
  syncAll(changes, server)
  const [sync] = syncAll(changes, server)
  assert.deepEqual([sync?.changed, sync?.closed], [[], []])
  assert.deepEqual(sync?.load, { tunnels: 99, streams: 0 })
})

test('tunnels beyond the limit of a sync are in the next ones, and the counters of all in turn', () => {
  const changes = new TunnelChanges()
  const server = new Server()
  const count = 2.5 * SYNC_ITEMS_MAX
  let requests = 1
  for (let index = 0; index < count; index++)
    changes.opened(tunnel(`tun_${index}`), 'key', () => usage(requests)())
  const pages: TunnelSync['changed'][] = syncAll(changes, server).map(({ changed }) => changed)
  assert.deepEqual(
    pages.map(({ length }) => length),
    [1_000, 1_000, 500],
  )
  assert.equal(server.rows.size, count)
  requests = 2
  const reported = new Set<string>()
  for (let sync = 0; sync < 3; sync++)
    for (const { changed } of syncAll(changes, server)) for (const { id } of changed) reported.add(id)
  assert.equal(reported.size, count)
})

test('a snapshot of several syncs removes what is closed at its end, and nothing before', () => {
  const changes = new TunnelChanges()
  const server = new Server()
  const count = 2.5 * SYNC_ITEMS_MAX
  for (let index = 0; index < count; index++) changes.opened(tunnel(`tun_${index}`), 'key', usage(0))
  syncAll(changes, server)
  changes.closed('tun_0')
  changes.resync()
  const listed: number[] = []
  for (let hasMore = true; hasMore; ) {
    // The second sync is lost.
    const next = changes.next()
    if (listed.length !== 1) {
      server.apply(next.changes)
      next.acknowledge([])
    }
    listed.push(server.rows.size)
    hasMore = next.hasMore
  }
  assert.deepEqual(listed, [count, count, count, count - 1])
  assert.equal(changes.next().changes.snapshot, undefined)
})

test('a tunnel that is being claimed is reported as such, and as open once it is', () => {
  const changes = new TunnelChanges()
  changes.claiming(tunnel('tun_1'), 'key')
  const claiming = changes.next()
  assert.equal(claiming.changes.changed[0]?.isClaiming, true)
  changes.opened(tunnel('tun_1'), 'key', usage(1))
  const [open] = changes.next().changes.changed
  assert.deepEqual([open?.isClaiming, open?.requests], [undefined, 1])
  // The response to the first sync acknowledges only what it contained.
  claiming.acknowledge([])
  assert.equal(changes.next().changes.changed[0]?.requests, 1)
})

test('closed tunnels are limited: too many of them are replaced by a snapshot', () => {
  const changes = new TunnelChanges()
  const server = new Server()
  changes.opened(tunnel('tun_open'), 'key', usage(0))
  for (let index = 0; index < 9_000; index++) changes.opened(tunnel(`tun_${index}`), 'key', usage(0))
  syncAll(changes, server)
  for (let index = 0; index < 30_000; index++) changes.closed(`tun_${index}`)
  const sent = syncAll(changes, server)
  assert.ok(sent.length <= 10, `${sent.length} syncs`)
  assert.deepEqual([...server.rows.keys()], ['tun_open'])
})

test('a sync that was sent before a resync does not undo it', () => {
  const changes = new TunnelChanges()
  changes.opened(tunnel('tun_1'), 'key', usage(0))
  const before = changes.next()
  changes.resync()
  before.acknowledge([])
  assert.equal(changes.next().changes.previous, 0)
})

test('a tunnel that needs a grant is not reported until it has one, and its grant is sent until it is listed', () => {
  const changes = new TunnelChanges()
  const sent = () => {
    const next = changes.next()
    return { ...next, ids: next.changes.changed.map(({ id }) => id), grants: next.changes.grants }
  }
  for (const id of ['tun_1', 'tun_2']) changes.opened(tunnel(id), `key of ${id}`, usage(0))
  sent().acknowledge(['tun_2'])
  const [ungranted] = changes.ungranted()
  assert.equal(ungranted?.key, 'key of tun_2')
  const without = sent()
  assert.deepEqual([without.ids, without.changes.load.tunnels], [[], 2])
  without.acknowledge([])
  Object.assign(ungranted ?? {}, { grant: 'g-1', isGrantRequired: false })
  for (const rejected of [['tun_2'], []]) {
    const granted = sent()
    assert.deepEqual([granted.ids, granted.grants], [['tun_2'], ['g-1']])
    granted.acknowledge(rejected)
    assert.equal(changes.ungranted().length, rejected.length)
    Object.assign(changes.ungranted()[0] ?? {}, { isGrantRequired: false })
  }
  assert.deepEqual([sent().ids, sent().grants], [[], undefined])
})
