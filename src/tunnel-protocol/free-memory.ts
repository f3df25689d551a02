// Frees the memory of large chunks as soon as they are sent. Otherwise V8 collects garbage for every 22 MB of
// them, which takes more than half of the processor time of a large upload.

type WriteCallback = (error?: Error | null) => void

const BYTES_MIN = 16 * 1024

/**
 * Returns the callback for `write(chunk, callback)`, which frees the chunk's memory. The caller must be its
 * only owner: nobody else uses it, or a slice of it. Undefined for small chunks and for parts of a larger
 * buffer: Node gives the rest of it to the next read, of any connection.
 */
export function freeAfterWrite(chunk: Buffer): WriteCallback | undefined {
  const { buffer } = chunk
  if (chunk.length < BYTES_MIN || chunk.length !== buffer.byteLength) return undefined
  if (!(buffer instanceof ArrayBuffer)) return undefined
  return (error) => {
    // After an error the kernel may still read the memory. Node 20 has no `transfer`.
    if (!error) buffer.transfer?.(0)
  }
}
