const { ALLOWED_ORIGIN } = process.env

export default ALLOWED_ORIGIN ? { allowedDevOrigins: [ALLOWED_ORIGIN] } : {}
