// Frees the memory of large chunks as soon as they are sent. Otherwise V8 collects garbage for every 22 MB of
// them, which takes more than half of the processor time of a large upload.
type WriteCallback = (error?: Error | null) => void

const BYTES_MIN = 16 * 1024

/**
 * A callback for the write of a chunk that was received from a stream and belongs to the caller alone.
 * Undefined if the chunk is small or a part of memory that others may use.
 */
export function freeOnceSent(chunk: Buffer): WriteCallback | undefined {
  const { buffer } = chunk
  if (chunk.length < BYTES_MIN || chunk.length !== buffer.byteLength) return undefined
  if (!(buffer instanceof ArrayBuffer)) return undefined
  return (error) => {
    // After an error it is not known whether the system still reads the memory.
    if (!error) buffer.transfer(0)
  }
}
