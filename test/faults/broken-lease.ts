// Makes a node careless: loaded ahead of Adit, it has the node trust its memory for ever. The product has no such switch;
// here its source is changed while it is read.
import { registerHooks } from 'node:module'

const CAREFUL = 'isValid: () => performance.now() < until.monotonic && clock() < until.wall'
const CARELESS = 'isValid: () => true'
let changed = 0

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!loaded.source || !String(loaded.source).includes(CAREFUL)) return loaded
    changed += 1
    return { ...loaded, source: String(loaded.source).replace(CAREFUL, CARELESS) }
  },
})

// Long after all is loaded.
setTimeout(() => {
  if (changed !== 1) throw new Error(`loaded ${changed} times, not once: ${CAREFUL}`)
}, 1_500).unref()
