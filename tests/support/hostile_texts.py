"""Texts that are hard to get back unchanged."""

from hypothesis import strategies as st

# Surrogates too, which stand for bytes that are not UTF-8.
anything = st.text(st.characters(exclude_categories=()), max_size=60)
# More of what matters here than characters at random would bring.
tricky = st.text(st.sampled_from("aBz é'ﬂ½²4_.@#\n\r\t\0\u0301\u00adйÅ你😀\udc80 ,-"), max_size=40)
