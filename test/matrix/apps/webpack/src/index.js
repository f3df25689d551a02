document.querySelector('p').textContent = 'first'
import.meta.webpackHot?.accept()
