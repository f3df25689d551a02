// Labels of host names (RFC 1123) in lower case, the form in which host names are compared.
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

export const isDnsLabel = (text: string): boolean => DNS_LABEL.test(text)

/** The rule in words, for messages. */
export const DNS_LABEL_RULE = 'lower-case letters, digits and hyphens between them, at most 63 characters'

/** Accepts the host of a URL, or an address to listen on. */
export const isLoopbackHost = (host: string): boolean =>
  /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host)
