// Loaded before Adit, patches its source so that leases never expire. The product has no such switch.
import { registerHooks } from 'node:module'

const ORIGINAL = 'isValid: () => performance.now() < until.monotonic && clock() < until.wall'
const PATCHED = 'isValid: () => true'
let patched = 0

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!loaded.source || !String(loaded.source).includes(ORIGINAL)) return loaded
    patched += 1
    return { ...loaded, source: String(loaded.source).replace(ORIGINAL, PATCHED) }
  },
})

// After everything is loaded.
setTimeout(() => {
  if (patched !== 1) throw new Error(`patched ${patched} times instead of once: ${ORIGINAL}`)
}, 1_500).unref()
