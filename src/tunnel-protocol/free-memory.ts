// Frees the memory of large chunks as soon as they are sent. Otherwise V8 collects garbage for every 22 MB of
// them, which takes more than half of the processor time of a large upload.
import { fillsMemory, payloadMemory } from '../yamux/index.ts'

type WriteCallback = (error?: Error | null) => void

const BYTES_MIN = 16 * 1024

/**
 * Returns the callback for `write(chunk, callback)`, which frees the chunk's memory. The caller must be its
 * only owner: nobody else uses it, or a slice of it. Undefined for small chunks and for slices of a larger
 * buffer.
 */
export function freeAfterWrite(chunk: Buffer): WriteCallback | undefined {
  const memory = payloadMemory(chunk)
  // After an error the kernel may still read the memory.
  if (memory) return (error) => void (error || memory.release())
  const { buffer } = chunk
  if (chunk.length < BYTES_MIN || !fillsMemory(chunk)) return undefined
  if (!(buffer instanceof ArrayBuffer)) return undefined
  return (error) => {
    // Node 20 has no `transfer`.
    if (!error) buffer.transfer?.(0)
  }
}
