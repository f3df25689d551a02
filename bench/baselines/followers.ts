// Nodes without HTTP: real change followers, each with its own control connection. A message sets their
// number.

import { openStore, type Store } from '../../src/server/store/engine/store.ts'
import { type ChangeFollower, startChangeFollower } from '../../src/server/verification/change-follower.ts'

const { url } = JSON.parse(process.argv[2] as string) as { url: string }
const running: { store: Store; follower: ChangeFollower }[] = []

async function start(index: number): Promise<void> {
  const store = openStore(
    { engine: 'postgres', url },
    { onLostConnection() {}, onStorageFault() {}, onStorageRecovered() {} },
  )
  const node = { id: `node_${process.pid}_${index}`, host: 'bench', pid: process.pid, version: '0' }
  const follower = await startChangeFollower(store, Date.now, node, { onFailure() {}, onRecovery() {} })
  running.push({ store, follower })
}

process.on('message', async ({ count }: { count: number }) => {
  for (const { store, follower } of running.splice(count)) {
    await follower.deregister()
    await store.close()
  }
  // One after the other: a hundred simultaneous connections would time out on a small machine.
  while (running.length < count) await start(running.length)
  process.send?.({})
})
process.once('disconnect', () => process.exit())
process.send?.({})
