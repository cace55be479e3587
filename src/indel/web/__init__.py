"""The page: repair, watch, process and likelihood in a browser, on Gradio."""
