// Loaded before Adit: at each SIGUSR2 the clock of the process jumps ahead, back, behind, and back again.
const JUMPS_MS = [45_000, -45_000, -45_000, 45_000]

const { now } = Date
let jumps = 0
let offsetMs = 0

class JumpingDate extends Date {
  constructor(...given: [] | [number]) {
    super(...((given.length === 0 ? [JumpingDate.now()] : given) as [number]))
  }

  static override now = () => now() + offsetMs
}

globalThis.Date = JumpingDate as DateConstructor
process.on('SIGUSR2', () => {
  offsetMs += JUMPS_MS[jumps % JUMPS_MS.length] as number
  jumps += 1
})
