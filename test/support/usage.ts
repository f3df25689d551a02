// Usage reports, as edges send them.

/** A counter of the default workspace, with zeros for what is not given. */
export const counter = (given: object) => ({
  workspace: 'acme',
  day: '2026-03-01',
  requests: 0,
  bytesIn: 0,
  bytesOut: 0,
  events: 0,
  ...given,
})
