// Makes a node careless: loaded ahead of Adit, it has the node trust its memory for ever. The product has no such switch;
// here its source is changed while it is read.
import { registerHooks } from 'node:module'

const FILE = '/src/directory/lease.ts'
const CAREFUL = 'isTrusted: () => performance.now() < until.monotonic && clock() < until.wall,'
const CARELESS = 'isTrusted: () => true,'

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!url.endsWith(FILE)) return loaded
    const parts = String(loaded.source).split(CAREFUL)
    if (parts.length !== 2) throw new Error(`${FILE} holds ${parts.length - 1} times, not once: ${CAREFUL}`)
    return { ...loaded, source: parts.join(CARELESS) }
  },
})
